"""The machine that kernels are compiled for."""

from dataclasses import dataclass
from functools import cache

import llvmlite.binding as llvm


@dataclass(frozen=True)
class Target:
    """A CPU as LLVM names it."""

    triple: str
    cpu: str
    features: str

    def has(self, feature: str) -> bool:
        """True when the CPU has a feature, by LLVM's name for it."""
        return f"+{feature}" in self.features.split(",")

    @property
    def is_x86(self) -> bool:
        """True on 64-bit Intel and AMD machines."""
        return self.triple.startswith("x86_64")

    @property
    def vector_bytes(self) -> int:
        """Width of a vector register."""
        return 64 if self.has("avx512f") else 32 if self.has("avx2") else 16

    @property
    def has_fma(self) -> bool:
        """True when fused multiply-add is one instruction."""
        return self.has("fma") or not self.is_x86

    def machine(self) -> llvm.TargetMachine:
        """LLVM's code generator for this CPU."""
        target = llvm.Target.from_triple(self.triple)
        return target.create_target_machine(
            cpu=self.cpu,
            features=self.features,
            opt=1,
            reloc="static",
            codemodel="large",  # sections may lie more than 2 GB apart in a process that has much mapped
        )


@cache
def host() -> Target:
    """The CPU of this process."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features().flatten()
    return Target(llvm.get_process_triple(), llvm.get_host_cpu_name(), features)
