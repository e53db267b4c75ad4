"""Our model as Pinocchio's, built joint by joint, and the maps between the two conventions.

Pinocchio's quaternions are scalar-last, its spatial vectors linear-first, and the velocity of its free joint is
expressed in the body. Its joints sit at the origin of their frame; ours at an anchor in the body. So a joint's frame
in Pinocchio is ours moved to the anchor.
"""

import numpy as np
import pinocchio as pin

from truesim.math.spatial.inertia import symmetric
from truesim.physics.dynamics.links import _offsets
from truesim.physics.model.kinds import BALL, FREE, HINGE, SLIDE
from truesim.physics.model.model import Model

REVOLUTE = {(1, 0, 0): pin.JointModelRX, (0, 1, 0): pin.JointModelRY, (0, 0, 1): pin.JointModelRZ}


class PinocchioModel:
    """A Pinocchio model with the same links, and the maps of coordinates and velocities."""

    def __init__(self, model: Model):
        """Builds it."""
        self.ours, self.model = model, pin.Model()
        self.model.gravity = pin.Motion(np.asarray(model.gravity), np.zeros(3))
        offsets = _offsets(model)
        frames: list[tuple[int, pin.SE3]] = []  # joint in Pinocchio, and our link's frame in that joint's
        self.bodies: list[tuple[int, pin.SE3]] = [(0, pin.SE3.Identity())] * len(model.bodies.names)
        for i, link in enumerate(model.topology.links):
            parent, before = frames[link.parent] if link.parent >= 0 else (0, pin.SE3.Identity())
            place = before * pin.SE3(np.asarray(offsets.rotation[i]), np.asarray(offsets.translation[i]))
            anchor = pin.SE3.Identity()
            if link.kind in (HINGE, SLIDE, BALL):
                anchor.translation = np.asarray(model.joints.position[link.joint])
            if link.joint >= 0:
                joint = self._joint(link)
                parent = self.model.addJoint(parent, joint, place * anchor, f"joint{i}")
                place = anchor.inverse()
            frames.append((parent, place))
            if link.last:
                b = link.body
                inertia = np.asarray(symmetric(np.asarray(model.bodies.inertia)[b]))
                body = pin.Inertia(float(model.bodies.mass[b]), np.asarray(model.bodies.com[b]), inertia)
                self.model.appendBodyToJoint(parent, body, place)
                self.bodies[b] = (parent, place)
        self.model.armature = np.asarray(self._per_dof(model.joints.armature))
        self.data = self.model.createData()

    def _joint(self, link) -> pin.JointModel:
        axis = np.asarray(self.ours.joints.axis[link.joint])
        if link.kind == FREE:
            return pin.JointModelFreeFlyer()
        if link.kind == BALL:
            return pin.JointModelSpherical()
        if link.kind == SLIDE:
            return pin.JointModelPrismaticUnaligned(axis)
        aligned = REVOLUTE.get(tuple(int(x) if x in (0.0, 1.0) else 2 for x in axis))
        return aligned() if aligned else pin.JointModelRevoluteUnaligned(axis)

    def _per_dof(self, x) -> np.ndarray:
        links = self.ours.topology.links
        return np.array([x[link.joint] for link in links for _ in range(link.kind.nv)])

    def configuration(self, q: np.ndarray) -> np.ndarray:
        """Pinocchio's coordinates for ours."""
        theirs = np.array(q, dtype=float)
        for link in self.ours.topology.links:
            if link.kind in (HINGE, SLIDE):
                theirs[link.q] -= self.ours.joints.ref[link.joint]
            elif link.kind in (BALL, FREE):
                theirs[link.q.stop - 4 : link.q.stop] = np.roll(theirs[link.q.stop - 4 : link.q.stop], -1)
        return theirs

    def velocity_map(self, q: np.ndarray) -> np.ndarray:
        """The matrix T with `v_pinocchio = T v_ours`: free joints turn their linear velocity into the body."""
        T = np.eye(self.ours.nv)
        for link in self.ours.topology.links:
            if link.kind == FREE:
                w, x, y, z = q[link.q][3:]
                linear = slice(link.v.start, link.v.start + 3)
                T[linear, linear] = pin.Quaternion(w, x, y, z).matrix().T
        return T

    def acceleration_bias(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """The vector b with `a_pinocchio = T a_ours + b`: the rate of T times v."""
        bias = np.zeros(self.ours.nv)
        T = self.velocity_map(q)
        for link in self.ours.topology.links:
            if link.kind == FREE:
                linear = slice(link.v.start, link.v.start + 3)
                bias[linear] = -np.cross(v[link.v][3:], (T @ v)[linear])
        return bias

    @property
    def representable(self) -> bool:
        """Whether the two conventions describe the same robot: an armature of a free joint depends on the axes."""
        free = [link.joint for link in self.ours.topology.links if link.kind == FREE]
        return not np.any(np.asarray(self.ours.joints.armature)[free])

    def fields(self, q, v, tau, external) -> dict:
        """Poses, mass matrix, forces and acceleration, in our conventions; see `mujoco_fields`."""
        T, b, p = self.velocity_map(q), self.acceleration_bias(q, v), self.configuration(q)
        forces = pin.StdVec_Force()
        forces.extend([pin.Force.Zero() for _ in range(self.model.njoints)])
        for (joint, place), force in zip(self.bodies, np.asarray(external), strict=True):
            forces[joint] += place.act(pin.Force(force[3:], force[:3]))
        pin.forwardKinematics(self.model, self.data, p)
        poses = [self.data.oMi[joint] * place for joint, place in self.bodies]
        upper = np.triu(pin.crba(self.model, self.data, p))
        M = upper + np.triu(upper, 1).T
        return {
            "positions": np.stack([pose.translation for pose in poses]),
            "rotations": np.stack([pose.rotation for pose in poses]),
            "mass matrix": T.T @ M @ T,
            "bias forces": T.T @ pin.rnea(self.model, self.data, p, T @ v, b),
            "inverse dynamics": T.T @ pin.rnea(self.model, self.data, p, T @ v, T @ tau + b),
            "acceleration": T.T @ (pin.aba(self.model, self.data, p, T @ v, T @ tau, forces) - b),
        }

    def regressor(self, q, v, a) -> np.ndarray:
        """The regressor of our bodies' parameters, in our conventions."""
        T, b, p = self.velocity_map(q), self.acceleration_bias(q, v), self.configuration(q)
        Y = T.T @ pin.computeJointTorqueRegressor(self.model, self.data, p, T @ v, T @ a + b)
        columns = []
        for joint, place in self.bodies:
            own = Y[:, 10 * (joint - 1) : 10 * joint] if joint else np.zeros((self.ours.nv, 10))
            columns += [own @ _moved(place, unit) for unit in np.eye(10)]
        return np.stack(columns, axis=1)


def _moved(place: pin.SE3, ten: np.ndarray) -> np.ndarray:
    """Our ten parameters about a body's origin, as Pinocchio's ten about its joint's."""
    R, P = place.rotation, pin.skew(place.translation)
    mass, first = ten[0], R @ ten[1:4]
    H = pin.skew(first)
    I = R @ np.asarray(symmetric(ten[4:])) @ R.T - P @ H - H @ P - mass * P @ P
    six = [I[0, 0], I[0, 1], I[1, 1], I[0, 2], I[1, 2], I[2, 2]]
    return np.concatenate([[mass], first + mass * place.translation, six])
