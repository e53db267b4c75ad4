"""CPU that kernels are compiled for, and LLVM's optimization level."""

from dataclasses import dataclass
from functools import cache

import llvmlite.binding as llvm


@dataclass(frozen=True)
class CpuTarget:
    """A CPU in LLVM's terms, with the optimization level. All of it is part of the key of cached kernels."""

    triple: str
    cpu: str
    features: str
    level: int = 1
    """Optimization level of LLVM's code generator. Level 0 compiles about five times faster than level 1; its code
    takes 1.3 to 1.5 times as long and may differ in the last digits, since it fuses other products and sums."""

    def has(self, feature: str) -> bool:
        """True when the CPU has a feature, given by LLVM's name."""
        return f"+{feature}" in self.features.split(",")

    @property
    def is_x86(self) -> bool:
        """True on 64-bit Intel and AMD machines."""
        return self.triple.startswith("x86_64")

    @property
    def is_windows(self) -> bool:
        """True on Windows."""
        return "windows" in self.triple

    @property
    def vector_bytes(self) -> int:
        """Width of a vector register [bytes]."""
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
            opt=self.level,
            reloc="static",
            codemodel="large",  # sections may be more than 2 GB apart in a large process
        )


@cache
def host(level: int = 1) -> CpuTarget:
    """CPU of this process.

    Args:
        level: Optimization level of LLVM.
    """
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features().flatten()
    return CpuTarget(llvm.get_process_triple(), llvm.get_host_cpu_name(), features, level)
