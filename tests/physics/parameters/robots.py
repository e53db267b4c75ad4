"""A robot with something of every kind: joints, laws of actuators, sensors, sites and geoms."""

from tests.robots import robot
from truesim.physics.model.actuator_models import with_actuator_model
from truesim.physics.model.model import Model

EVERYTHING = """
<mujoco><compiler angle="radian"/><option timestep="0.005"><flag contact="disable"/></option><worldbody>
  <body name="cart" pos="0 0 1"><joint name="rail" type="slide" axis="1 0 0" damping=".5" frictionloss=".2"/>
    <inertial pos="0 0 0" mass="2" diaginertia=".1 .1 .1"/><site name="imu" pos=".1 0 0"/>
    <body name="upper" pos="0 0 -.1"><joint name="shoulder" axis="0 1 0" damping=".1" armature=".01" stiffness="1"
        springref=".2" range="-2 2" limited="true"/>
      <inertial pos=".01 0 -.2" mass="1" fullinertia=".02 .02 .002 .0001 0 0"/>
      <body name="rod" pos="0 0 -.4"><joint name="elbow" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 -.3"
          size=".01" mass=".3"/></body></body></body>
  <body name="head" pos="1 0 0"><joint name="neck" type="ball" damping=".02"/>
    <inertial pos="0 0 .1" mass=".5" diaginertia=".01 .02 .02"/></body>
  <body name="drone" pos="0 1 1"><freejoint name="flight"/>
    <inertial pos="0 0 0" mass="1" diaginertia=".01 .01 .02"/></body>
</worldbody><actuator>
  <motor name="push" joint="rail"/><position name="servo" joint="shoulder" kp="20" kv="1"/>
  <motor name="volt" joint="elbow"/><motor name="hobby" joint="elbow"/><motor name="direct" joint="elbow" gear="-1"/>
</actuator><sensor><jointpos name="angle" joint="elbow"/><gyro name="gyro" site="imu"/>
  <framequat name="attitude" objtype="xbody" objname="head"/></sensor></mujoco>"""


def everything() -> Model:
    """The robot."""
    model = robot(EVERYTHING)
    for name, law in {"volt": "dc_motor", "hobby": "duty_servo", "direct": "minitaur_motor"}.items():
        model = with_actuator_model(model, name, law)
    return model
