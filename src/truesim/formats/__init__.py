"""Robot files in and out: MJCF, URDF, and the sidecar for what they cannot hold."""

from truesim.formats.load import load as load
from truesim.formats.load import loads as loads
from truesim.formats.save import save as save
