"""The machine: devices, memory, workers, child processes, what a figure was measured on, the log of a run."""
