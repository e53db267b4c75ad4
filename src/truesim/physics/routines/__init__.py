"""MuJoCo's step as table-driven vector routines: one machine code for every robot, one instance per vector lane.

The model is a set of tables (`StepTables`, in the names and units of `mjModel`) that the routines read at run time.
They repeat MuJoCo's constraint solver literally (start, line search, stopping rules), so that a motion agrees with
MuJoCo's to rounding.

A tile of instances shares its control flow. Whatever decides about loops and branches is an integer of the tables or
is true in *some* lane of the tile: a contact slot is a point of a pair of geoms that touches in any lane; in the
others its weight is zero.

- `layout`, `tables`, `from_mujoco`: the tables, and their construction from a compiled `mjModel`;
- `kinematics`, `inertia`, `forces`, `integrate`: smooth dynamics and integration;
- `collision`, `shapes`, `foreign`: pairs of geoms to contact slots;
- `rows`, `equalities`, `limits`: constraints, their impedance and reference acceleration;
- `factor`, `newton`, `line_search`, `cones`, `islands`: the solver;
- `rollout`, `library`, `engine`: many steps in one call, machine code, NumPy arrays.
"""
