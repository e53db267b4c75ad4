"""A model as tables of numbers: what `layout.STRUCTURE` and `layout.PARAMETERS` name."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from truesim.core.errors import TruesimError
from truesim.physics.routines.layout import MODEL_SIZES, OPTION_SIZES, PARAMETERS, STRUCTURE


@dataclass(frozen=True)
class StepTables:
    """Model of a robot and its scene, in the names and units of `mjModel`."""

    sizes: Mapping[str, int]
    """Sizes (`layout.MODEL_SIZES`) and integer options (`layout.OPTION_SIZES`)."""
    structure: Mapping[str, np.ndarray]
    """Integer arrays, by the names of `layout.STRUCTURE`."""
    parameters: Mapping[str, np.ndarray]
    """Real arrays, by the names of `layout.PARAMETERS`."""

    def __post_init__(self) -> None:
        missing = {*MODEL_SIZES, *OPTION_SIZES} - set(self.sizes)
        missing |= {*STRUCTURE} - set(self.structure) | {*PARAMETERS} - set(self.parameters)
        if missing:
            raise TruesimError(f"tables of a model lack {', '.join(sorted(missing))}")
        for name, size in STRUCTURE.items():
            self._check(name, self.structure[name], (self.sizes[size],))
        for name in PARAMETERS:
            self._check(name, self.parameters[name], self.shape(name))

    def shape(self, name: str) -> tuple[int, ...]:
        """Shape of a parameter of one instance."""
        return tuple(self.sizes[n] if isinstance(n, str) else n for n in PARAMETERS[name])

    @cached_property
    def parameter_count(self) -> int:
        """Number of real parameters of an instance."""
        return sum(int(np.prod(self.shape(name))) for name in PARAMETERS)

    @staticmethod
    def _check(name: str, array: np.ndarray, shape: tuple[int, ...]) -> None:
        if np.shape(array) != shape:
            raise TruesimError(f"table {name} has shape {np.shape(array)}, but must have {shape}")
