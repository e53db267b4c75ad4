# Types of the modules that `lazy.py` loads on first use.
import jax as jax

from truesim import control as control
from truesim import native as native
from truesim import policies as policies
from truesim.cli import comparison_table as comparison_table
from truesim.cli import coverage as coverage
from truesim.cli import demo_robot as demo_robot
from truesim.cli import designing as designing
from truesim.cli import fit_observer as fit_observer
from truesim.cli import fit_tables as fit_tables
from truesim.cli import gap_methods as gap_methods
from truesim.cli import guessed_mapping as guessed_mapping
from truesim.cli import inspect_logs as inspect_logs
from truesim.cli import inspect_ports as inspect_ports
from truesim.cli import inspect_robot as inspect_robot
from truesim.cli import live_pages as live_pages
from truesim.cli import log_warnings as log_warnings
from truesim.cli import measured_gap as measured_gap
from truesim.cli import motion as motion
from truesim.cli import payload as payload
from truesim.cli import planned as planned
from truesim.cli import posterior_tables as posterior_tables
from truesim.cli import replayed as replayed
from truesim.cli import sampling as sampling
from truesim.cli import subject as subject
from truesim.cli import suggestion_tables as suggestion_tables
from truesim.cli import trained_policies as trained_policies
from truesim.cli import verbs as verbs
from truesim.cli import watch_screen as watch_screen
from truesim.files import logs as logs
from truesim.identification import excitation as excitation
from truesim.identification import fit_folder as fit_folder
from truesim.identification import online as online
from truesim.identification import suggestion as suggestion
from truesim.identification.diagnose import evaluation as evaluation
from truesim.identification.diagnose import options as diagnose_options_
from truesim.identification.diagnose import score_test as score_test
from truesim.identification.problem import build as build
from truesim.identification.problem import per_log as per_log
from truesim.identification.regression import errors as torque_errors_
from truesim.identification.regression import limits
from truesim.identification.regression import torques as torques
from truesim.identification.search import run as search_run_
from truesim.identification.solve import options as solve_options_
from truesim.identification.suggestion import folder
from truesim.physics.model import actuator_models as actuator_models
from truesim.report import comparison as comparison
from truesim.report import fit_page as fit_page
from truesim.report import suggest_page as suggest_page
from truesim.scenes import before_after as before_after
from truesim.scenes import nodes as nodes
from truesim.scenes import replay as replay
from truesim.scenes import viewer_library as viewer_library
from truesim.studio import application as application
from truesim.studio import policy_motion as policy_motion
from truesim.studio import viewing as viewing

LAZY_MODULES: dict[str, str]
suggestion_folder = folder
diagnose_options = diagnose_options_
effort_limits = limits
torque_errors = torque_errors_
search_run = search_run_
solve_options = solve_options_
