"""Loop language: vector routines with sizes at run time, written in Python and compiled by LLVM.

Where `native.compile` unrolls a JAX function into straight-line code, a routine of this package keeps its loops:
sizes and index tables are read at run time, so that one piece of machine code serves every model. Each vector lane
computes one instance of a batch; instances in a tile of lanes share their control flow, and values of lanes that do
not take part are masked by `where`.

- `values`, `language`: values, variables, arrays; functions, loops and branches;
- `layout`: named arrays within three flat buffers (tables, parameters, workspace);
- `functions`: sine, cosine, arc tangent and powers;
- `library`: compilation, the cache on disk, addresses of loaded routines.
"""
