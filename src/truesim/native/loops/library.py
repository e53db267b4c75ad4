"""Compilation of routines, and the addresses of loaded ones."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm

from truesim.native.codegen.target import CpuTarget
from truesim.native.loops.layout import RoutineModule
from truesim.native.runtime import cache


class RoutineLibrary:
    """Machine code of a module of routines, from the cache on disk or compiled.

    Args:
        write: Function that writes the routines; called only if the cache has no object code.
        source: Identifies what `write` does: sources, precision, lanes.
        target: CPU.
    """

    def __init__(self, write: Callable[[], RoutineModule], source: bytes, target: CpuTarget):
        key = cache.key(b"routines\0" + source, target)
        code = cache.read(key)
        if code is None:
            code = compile_module(str(write().module), target)
            cache.write(key, code)
        empty = llvm.parse_assembly("")
        self._engine: Any = llvm.create_mcjit_compiler(empty, _machine(target))
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self._engine.finalize_object()

    def address(self, name: str) -> int:
        """Address of a routine."""
        found: int = self._engine.get_function_address(name)
        assert found, f"no routine is called {name}"
        return found


def compile_module(text: str, target: CpuTarget) -> bytes:
    """Optimize LLVM IR and compile it to object code."""
    context = llvm.create_context()
    module = llvm.parse_assembly(text, context)
    module.verify()
    module.triple = target.triple
    machine = _machine(target)
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_unrolling = False
    options.loop_vectorization = options.slp_vectorization = False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return machine.emit_object(module)


def hash_sources(*folders: Path) -> bytes:
    """Hash of the Python sources of folders."""
    digest = hashlib.sha256()
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.digest()


def _machine(target: CpuTarget) -> llvm.TargetMachine:
    kind = llvm.Target.from_triple(target.triple)
    return kind.create_target_machine(
        cpu=target.cpu, features=target.features, opt=2, reloc="static", codemodel="large"
    )
