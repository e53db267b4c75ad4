"""Robot files: load, save and export MJCF and URDF, with a sidecar for what they cannot hold."""

from truesim.files.robots.load import load as load
from truesim.files.robots.load import loads as loads
from truesim.files.robots.save import save as save
