"""LLVM functions that move arrays between batch-first order and tiles of lanes."""


def _transpose_square(rows: list[str], bits: int, lanes: int) -> tuple[list[str], list[str]]:
    """Instructions that transpose a square of vectors, and the names of the results."""
    lines: list[str] = []
    vector = f"<{lanes} x i{bits}>"
    distance = 1
    while distance < lanes:
        updated = list(rows)
        for r in range(lanes):
            if r & distance:
                continue
            a, b = rows[r], rows[r | distance]
            low = [j if not j & distance else lanes + (j ^ distance) for j in range(lanes)]
            high = [j ^ distance if not j & distance else lanes + j for j in range(lanes)]
            for target, pattern in ((r, low), (r | distance, high)):
                name = f"%x{distance}.{target}"
                mask = ", ".join(f"i32 {j}" for j in pattern)
                lines.append(f"{name} = shufflevector {vector} {a}, {vector} {b}, <{lanes} x i32> <{mask}>")
                updated[target] = name
        rows = updated
        distance *= 2
    return lines, rows


def _lane_pointers(lanes: int, base: str) -> list[str]:
    lines = []
    for lane in range(lanes):
        lines += [
            f"%small{lane} = icmp ult i64 {lane}, %last",
            f"%row{lane} = select i1 %small{lane}, i64 {lane}, i64 %last",
            f"%skip{lane} = mul i64 %row{lane}, %stride",
            f"%p{lane} = getelementptr i8, ptr {base}, i64 %skip{lane}",
        ]
    return lines


def gather(bits: int, lanes: int) -> str:
    """@gather: rows of `n` elements to vectors of lanes; lanes after `last` repeat that row."""
    vector = f"<{lanes} x i{bits}>"
    align = bits // 8
    loads = []
    for lane in range(lanes):
        loads += [
            f"%a{lane} = getelementptr i{bits}, ptr %p{lane}, i64 %k",
            f"%r{lane} = load {vector}, ptr %a{lane}, align {align}",
        ]
    shuffles, columns = _transpose_square([f"%r{lane}" for lane in range(lanes)], bits, lanes)
    stores = []
    for j, column in enumerate(columns):
        stores += [
            f"%d{j} = getelementptr {vector}, ptr %to, i64 %k{j}",
            f"store {vector} {column}, ptr %d{j}, align {align}",
        ]
    tail = []
    for lane in range(lanes):
        tail += [
            f"%ta{lane} = getelementptr i{bits}, ptr %p{lane}, i64 %m",
            f"%tv{lane} = load i{bits}, ptr %ta{lane}, align {align}",
            f"%ti{lane} = insertelement {vector} {'poison' if lane == 0 else f'%ti{lane - 1}'}, "
            f"i{bits} %tv{lane}, i64 {lane}",
        ]
    return "\n".join([
        f"define internal void @gather{bits}(ptr %from, i64 %stride, ptr %to, i64 %n, i64 %last) nounwind {{",
        "entry:", *_lane_pointers(lanes, "%from"), f"%whole = and i64 %n, -{lanes}", "br label %head",
        "head:", "%k = phi i64 [0, %entry], [%k.next, %block]", "%more = icmp ult i64 %k, %whole",
        "br i1 %more, label %block, label %tail",
        "block:", *loads, *shuffles, *(f"%k{j} = add i64 %k, {j}" for j in range(lanes)), *stores,
        f"%k.next = add i64 %k, {lanes}", "br label %head",
        "tail:", "%m = phi i64 [%whole, %head], [%m.next, %single]", "%left = icmp ult i64 %m, %n",
        "br i1 %left, label %single, label %done",
        "single:", *tail, f"%td = getelementptr {vector}, ptr %to, i64 %m",
        f"store {vector} %ti{lanes - 1}, ptr %td, align {align}", "%m.next = add i64 %m, 1", "br label %tail",
        "done:", "ret void", "}",
    ])  # fmt: skip


def scatter(bits: int, lanes: int) -> str:
    """@scatter: vectors of lanes to rows of `n` elements; only `count` rows are written."""
    vector = f"<{lanes} x i{bits}>"
    align = bits // 8
    loads = []
    for j in range(lanes):
        loads += [
            f"%k{j} = add i64 %k, {j}",
            f"%s{j} = getelementptr {vector}, ptr %from, i64 %k{j}",
            f"%r{j} = load {vector}, ptr %s{j}, align {align}",
        ]
    shuffles, rows = _transpose_square([f"%r{j}" for j in range(lanes)], bits, lanes)
    stores = []
    for lane, row in enumerate(rows):
        stores += [
            f"%a{lane} = getelementptr i{bits}, ptr %p{lane}, i64 %k",
            f"store {vector} {row}, ptr %a{lane}, align {align}",
        ]
    return "\n".join([
        f"define internal void @scatter{bits}(ptr %from, ptr %to, i64 %n, i64 %count) nounwind {{",
        "entry:", f"%stride = mul i64 %n, {align}", "%last = sub i64 %count, 1",
        *_lane_pointers(lanes, "%to"),
        f"%full = icmp eq i64 %count, {lanes}", f"%blocks = and i64 %n, -{lanes}",
        "%whole = select i1 %full, i64 %blocks, i64 0", "br label %head",
        "head:", "%k = phi i64 [0, %entry], [%k.next, %block]", "%more = icmp ult i64 %k, %whole",
        "br i1 %more, label %block, label %tail",
        "block:", *loads, *shuffles, *stores, f"%k.next = add i64 %k, {lanes}", "br label %head",
        "tail:", "%m = phi i64 [%whole, %head], [%m.next, %written]", "%left = icmp ult i64 %m, %n",
        "br i1 %left, label %rows, label %done",
        "rows:", "%lane = phi i64 [0, %tail], [%lane.next, %one]", "%inside = icmp ult i64 %lane, %count",
        "br i1 %inside, label %one, label %written",
        "one:", f"%base = mul i64 %m, {lanes}", "%place = add i64 %base, %lane",
        f"%at = getelementptr i{bits}, ptr %from, i64 %place",
        f"%value = load i{bits}, ptr %at, align {align}",
        "%skip = mul i64 %lane, %n", "%target = add i64 %skip, %m",
        f"%out = getelementptr i{bits}, ptr %to, i64 %target",
        f"store i{bits} %value, ptr %out, align {align}",
        "%lane.next = add i64 %lane, 1", "br label %rows",
        "written:", "%m.next = add i64 %m, 1", "br label %tail",
        "done:", "ret void", "}",
    ])  # fmt: skip


COPY_FUNCTION = """
define internal void @pass(ptr %from, i64 %stride, ptr %to, i64 %size, i64 %start, i64 %stop) nounwind {
entry:
  %shared = icmp eq i64 %stride, 0
  br i1 %shared, label %head, label %all
all:
  %skip = mul i64 %start, %size
  %source = getelementptr i8, ptr %from, i64 %skip
  %target = getelementptr i8, ptr %to, i64 %skip
  %amount = sub i64 %stop, %start
  %bytes = mul i64 %amount, %size
  call void @llvm.memcpy.p0.p0.i64(ptr %target, ptr %source, i64 %bytes, i1 false)
  ret void
head:
  %k = phi i64 [%start, %entry], [%k.next, %one]
  %more = icmp slt i64 %k, %stop
  br i1 %more, label %one, label %done
one:
  %place = mul i64 %k, %size
  %row = getelementptr i8, ptr %to, i64 %place
  call void @llvm.memcpy.p0.p0.i64(ptr %row, ptr %from, i64 %size, i1 false)
  %k.next = add i64 %k, 1
  br label %head
done:
  ret void
}"""
"""@pass: copy of an input to an output of `size` bytes, for the instances `start` to `stop`."""
