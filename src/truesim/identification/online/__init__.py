"""Online identification: parameters with intervals after every chunk of a stream, and sudden changes."""

from truesim.identification.online.chunks import Rejected, Sample
from truesim.identification.online.folder import WatchFolder
from truesim.identification.online.recursion import WatchOptions
from truesim.identification.online.sources import samples
from truesim.identification.online.update import ParameterChange, TrackedParameter, Update
from truesim.identification.online.watcher import Watcher, watch

__all__ = [
    "ParameterChange",
    "Rejected",
    "Sample",
    "TrackedParameter",
    "Update",
    "WatchFolder",
    "WatchOptions",
    "Watcher",
    "samples",
    "watch",
]
