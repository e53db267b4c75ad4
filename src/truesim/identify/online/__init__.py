"""Identification while the robot runs: parameters with intervals after every chunk of a stream, and sudden changes."""

from truesim.identify.online.chunks import Rejected, Sample
from truesim.identify.online.folder import WatchFolder
from truesim.identify.online.recursion import Watching
from truesim.identify.online.sources import samples
from truesim.identify.online.update import Change, Known, Update
from truesim.identify.online.watcher import Watcher, watch

__all__ = ["Change", "Known", "Rejected", "Sample", "Update", "WatchFolder", "Watcher", "Watching", "samples", "watch"]
