"""The machine: devices, memory, workers, child processes, the environment of measurements, the log of a run."""
