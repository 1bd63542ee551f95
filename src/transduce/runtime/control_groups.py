"""The Linux control groups of this process, by which a container's limits are set."""

from pathlib import Path

GROUPS, OWN = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def own_groups(own: Path = OWN) -> dict[str, Path]:
    """Controllers, with commas between, -> the group below `GROUPS`; "" is that of version 2. Elsewhere nothing."""
    try:
        lines = [line.split(":", 2) for line in own.read_text(encoding="utf-8").splitlines()]
        return {controllers: Path(path.lstrip("/")) for _, controllers, path in lines}
    except (OSError, ValueError):
        return {}
