"""Spatial vector algebra (Featherstone): rotations, Pluecker transforms, inertias.

Spatial vectors are angular-first: motion `[omega, v]`, force `[n, f]`. Quaternions are scalar-first, unit.
`X_AB` is the pose of frame B in frame A.
"""
