"""Names of the objects of a compiled MuJoCo model."""

import mujoco


def names_of(m: mujoco.MjModel, kind: mujoco.mjtObj, count: int, unnamed: str, first: int = 0) -> tuple[str, ...]:
    """Names of all objects of a kind; unnamed ones are named after their kind and number."""
    given = [mujoco.mj_id2name(m, kind, i) for i in range(first, count)]
    taken, names = {name for name in given if name}, []
    for i, name in enumerate(given, start=first):
        while not name or (name in taken and not given[i - first]):
            name = f"{name or unnamed + str(i)}" if not name else f"{name}_"
        names.append(name)
    return tuple(names)
