# Types of the public names, which `__init__.py` loads on first use.
from truesim.control import Task as Task
from truesim.control import plan as plan
from truesim.core.errors import TruesimError as TruesimError
from truesim.files.logs import Log as Log
from truesim.files.logs import read_log as read_log
from truesim.files.logs import read_logs as read_logs
from truesim.files.robots import load as load
from truesim.files.robots import save as save
from truesim.identification.after_fit import design as design
from truesim.identification.after_fit import suggest as suggest
from truesim.identification.fit import Fit as Fit
from truesim.identification.pipeline import identify as identify
from truesim.physics.blueprint import Blueprint as Blueprint
from truesim.physics.contact import CompliantContact as CompliantContact
from truesim.physics.contact import RigidContact as RigidContact
from truesim.physics.model.actuator_models import with_actuator_model as with_actuator_model
from truesim.physics.model.model import Model as Model
from truesim.physics.simulation import Simulator as Simulator
from truesim.physics.simulation import State as State
from truesim.physics.simulation import Trajectory as Trajectory
from truesim.physics.simulation import record as record
from truesim.physics.simulation import rollout as rollout

__version__: str
