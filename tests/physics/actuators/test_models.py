"""The motors: torque over speed in all quadrants, and each against its own published equations."""

import jax
import numpy as np
import pytest

from tests.robots import robot
from truesim.core.errors import NameUnknownError
from truesim.physics.actuators.forces import actuator_forces
from truesim.physics.model import paths
from truesim.physics.model.actuator_models import with_actuator_model
from truesim.physics.simulation import Simulator, rollout

ARM = """<mujoco><option timestep=".005"/><worldbody><body><joint name="a" axis="0 1 0" damping=".005" armature=".002"/>
  <inertial pos="0 0 -.1" mass=".49" diaginertia="1e-6 1e-6 1e-6"/></body></worldbody>
  <actuator><motor name="m" joint="a" {bounds}/></actuator></mujoco>"""
VOLTS, OHMS, KT = 12.0, 2.0, 0.3
STALL, NO_LOAD = KT * VOLTS / OHMS, VOLTS / KT


def motor(bounds: str = "", **numbers):
    """Torque of a motor as a function of its control and speed."""
    model = with_actuator_model(robot(ARM.format(bounds=bounds)), "m", "dc_motor", **numbers)
    return jax.jit(lambda u, v: actuator_forces(model, np.zeros(1), v[None], u[None]).force[0])


def test_dc_motor_at_stall_and_without_load():
    """Full duty gives the stall torque at rest and no torque at the no-load speed, either way round."""
    torque = motor(volts=VOLTS, resistance=OHMS, torque_constant=KT)
    for sign in (1.0, -1.0):
        np.testing.assert_allclose(torque(sign, 0.0), sign * STALL, rtol=1e-14)
        np.testing.assert_allclose(torque(sign, sign * NO_LOAD), 0.0, atol=1e-14)
        np.testing.assert_allclose(torque(sign, -sign * NO_LOAD), sign * 2 * STALL, rtol=1e-14)  # braking
        np.testing.assert_allclose(torque(sign * 5, 0.0), sign * STALL, rtol=1e-14)  # duty is bounded


def test_dc_motor_keeps_to_the_four_quadrants():
    """The largest and smallest torque at any speed are those of Isaac Lab's DCMotor."""
    most = 0.7 * STALL
    torque = motor(f'forcerange="{-most} {most}"', volts=VOLTS, resistance=OHMS, torque_constant=KT)
    for v in np.linspace(-2, 2, 41) * NO_LOAD:
        speed = np.clip(v, -NO_LOAD * (1 + most / STALL), NO_LOAD * (1 + most / STALL))
        largest = min(STALL * (1 - speed / NO_LOAD), most)
        smallest = max(STALL * (-1 - speed / NO_LOAD), -most)
        np.testing.assert_allclose([torque(1.0, v), torque(-1.0, v)], [largest, smallest], atol=1e-12)


def test_dc_motor_takes_volts_too():
    """With one volt of supply the control is a voltage, and `max_duty` bounds it."""
    duty = motor(volts=VOLTS, resistance=OHMS, torque_constant=KT)
    volts = motor(volts=1.0, max_duty=VOLTS, resistance=OHMS, torque_constant=KT)
    for u in (-2.0, -0.4, 0.0, 0.7):
        np.testing.assert_allclose(duty(u, 3.0), volts(u * VOLTS, 3.0), rtol=1e-14)


def test_minitaur_motor_follows_its_equations():
    """Torque from the table, net voltage bounded, and saturation, over positions and speeds of both signs."""
    numbers = {"kp": 1.2, "kd": 0.02, "viscous_constant": 0.01, "strength": 0.9}
    model = with_actuator_model(robot(ARM.format(bounds="")), "m", "minitaur_motor", **numbers)
    found = jax.jit(lambda q, v, u: actuator_forces(model, q[None], v[None], u[None]).force[0])
    table = [0, 10, 20, 30, 40, 50, 60], [0, 1, 1.9, 2.45, 3.0, 3.25, 3.5]
    rng = np.random.default_rng(0)
    for q, v, u in rng.normal(size=(60, 3)) * [0.3, 60.0, 0.3]:
        pwm = np.clip(1.2 * (u - q) - 0.02 * v, -1, 1)
        current = np.clip(16.0 * pwm - (0.0954 + 0.01) * v, -50, 50) / 0.186
        expected = 0.9 * np.sign(current) * np.interp(abs(current), *table)
        np.testing.assert_allclose(found(q, v, u), expected, atol=1e-12)


def test_duty_servo_follows_its_equations():
    """Clipped duty by the position error, and the motor behind it."""
    numbers = {"kp": 400.0, "kd": 0.01, "error_gain": 0.02, "volts": 7.4, "resistance": 3.0, "torque_constant": 0.6}
    model = with_actuator_model(robot(ARM.format(bounds="")), "m", "duty_servo", max_duty=0.9, **numbers)
    found = jax.jit(lambda q, v, u: actuator_forces(model, q[None], v[None], u[None]).force[0])
    for q, v, u in np.random.default_rng(0).normal(size=(40, 3)) * [0.2, 5.0, 0.2]:
        duty = np.clip(400 * 0.02 * (u - q) - 0.01 * v, -0.9, 0.9)
        np.testing.assert_allclose(found(q, v, u), 0.6 * 7.4 * duty / 3 - 0.6**2 / 3 * v, atol=1e-12)


def test_native_equals_xla():
    """A motion through every actuator model, delay included, is the same by both backends."""
    bodies = '<body><joint name="{0}"/><inertial pos=".1 0 0" mass="1" diaginertia=".1 .1 .1"/></body>'
    kinds = ("affine", "dc_motor", "duty_servo", "minitaur_motor")
    text = f"""<mujoco><worldbody>{"".join(bodies.format(kind) for kind in kinds)}</worldbody><actuator>
      {"".join(f'<position name="{kind}" joint="{kind}" kp="2"/>' for kind in kinds)}</actuator></mujoco>"""
    model = robot(text)
    for kind in kinds:
        model = paths.write(with_actuator_model(model, kind, kind), f"actuators/{kind}.delay", 0.0033)
    simulator, commands = Simulator.of(model), np.random.default_rng(0).normal(size=(30, 4))
    native, xla = (
        rollout(simulator, simulator.initial_state(command=commands[0]), commands, backend=backend)[0]
        for backend in ("native", "xla")
    )
    np.testing.assert_allclose(native.q, xla.q, atol=1e-13)
    np.testing.assert_allclose(native.v, xla.v, atol=1e-13)


def test_only_the_parameters_of_its_model_have_paths():
    """An actuator model is chosen by name; its parameters can be read and written, those of others not."""
    model = robot(ARM.format(bounds=""))
    servo = with_actuator_model(model, "m", "duty_servo", kp=800.0)
    assert float(paths.read(servo, "actuators/m.kp")) == 800.0
    assert model.actuators.models == ("affine",)
    with pytest.raises(NameUnknownError, match="no field of actuators/m named 'gain'"):
        paths.read(servo, "actuators/m.gain")
    with pytest.raises(NameUnknownError, match="no field of actuators/m named 'strength'"):
        with_actuator_model(model, "m", "duty_servo", strength=2.0)
    with pytest.raises(NameUnknownError, match="did you mean 'duty_servo'"):
        with_actuator_model(model, "m", "duty_serv")
