"""Code generation: scalar graph to schedule, LLVM IR and machine code."""
