"""What planning asks of each kind of task: one file a kind, with a class that is a `TaskPlanner`."""
