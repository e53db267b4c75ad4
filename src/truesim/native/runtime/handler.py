"""LLVM IR of the handler that XLA calls for every kernel in a compiled JAX function.

The handler reads XLA's call frame at fixed offsets, which hold for the versions of XLA's foreign function interface
(FFI) in `versions.TESTED_XLA_FFI`. Asked for its version, it answers with the tested one, not with that of XLA, and a
call from another version returns an error.
"""


def handler_ir(version: tuple[int, int]) -> str:
    """LLVM IR of `handler(frame)` for a tested version (major, minor) of XLA's FFI, and of its `table` of kernels."""
    major, minor = version
    message = f"truesim: native kernels are tested with version {major}.{minor} of the XLA FFI, which this is not"
    return "\n".join([
        f"@version = internal constant i64 {minor << 32 | major}",
        f'@untested = internal constant [{len(message) + 1} x i8] c"{message}\\00"',
        _HANDLER,
    ])  # fmt: skip


_HANDLER = """
@table = global ptr null
@unknown = internal constant [48 x i8] c"truesim: a native kernel is no longer loaded   \\00"
@mismatch = internal constant [48 x i8] c"truesim: a buffer does not fit a native kernel \\00"
@failed = internal constant [48 x i8] c"truesim: a host function failed, see above     \\00"
@memory = internal constant [48 x i8] c"truesim: no memory for a native kernel         \\00"

define internal ptr @word(ptr %base, i64 %k) alwaysinline {
  %p = getelementptr i64, ptr %base, i64 %k
  %v = load ptr, ptr %p
  ret ptr %v
}
define internal i64 @number(ptr %base, i64 %k) alwaysinline {
  %p = getelementptr i64, ptr %base, i64 %k
  %v = load i64, ptr %p
  ret i64 %v
}
define internal ptr @error(ptr %frame, ptr %message) {
  %api = call ptr @word(ptr %frame, i64 2)
  %create = call ptr @word(ptr %api, i64 6)
  %args = alloca {i64, ptr, ptr, i32}
  %p1 = getelementptr {i64, ptr, ptr, i32}, ptr %args, i64 0, i32 1
  %p2 = getelementptr {i64, ptr, ptr, i32}, ptr %args, i64 0, i32 2
  %p3 = getelementptr {i64, ptr, ptr, i32}, ptr %args, i64 0, i32 3
  store i64 28, ptr %args
  store ptr null, ptr %p1
  store ptr %message, ptr %p2
  store i32 3, ptr %p3
  %e = call ptr %create(ptr %args)
  ret ptr %e
}
; True when a buffer has the type and the number of elements that two words say.
define internal i1 @fits(ptr %buffer, ptr %expected) {
entry:
  %tp = getelementptr i64, ptr %buffer, i64 2
  %t = load i32, ptr %tp
  %type = zext i32 %t to i64
  %wanted = load i64, ptr %expected
  %count = call i64 @number(ptr %expected, i64 1)
  %rank = call i64 @number(ptr %buffer, i64 4)
  %dims = call ptr @word(ptr %buffer, i64 5)
  br label %head
head:
  %d = phi i64 [0, %entry], [%d.next, %body]
  %product = phi i64 [1, %entry], [%product.next, %body]
  %more = icmp ult i64 %d, %rank
  br i1 %more, label %body, label %done
body:
  %n = call i64 @number(ptr %dims, i64 %d)
  %product.next = mul i64 %product, %n
  %d.next = add i64 %d, 1
  br label %head
done:
  %same = icmp eq i64 %type, %wanted
  %all = icmp eq i64 %product, %count
  %ok = and i1 %same, %all
  ret i1 %ok
}
; Copies the data pointers of `n` buffers, described by `step` words each; false if one does not fit.
define internal i1 @collect(ptr %buffers, i64 %n, ptr %expected, i64 %step, ptr %pointers) {
entry:
  br label %head
head:
  %k = phi i64 [0, %entry], [%k.next, %good]
  %more = icmp ult i64 %k, %n
  br i1 %more, label %body, label %done
body:
  %buffer = call ptr @word(ptr %buffers, i64 %k)
  %skip = mul i64 %k, %step
  %words = getelementptr i64, ptr %expected, i64 %skip
  %ok = call i1 @fits(ptr %buffer, ptr %words)
  br i1 %ok, label %good, label %bad
good:
  %data = call ptr @word(ptr %buffer, i64 3)
  %slot = getelementptr ptr, ptr %pointers, i64 %k
  store ptr %data, ptr %slot
  %k.next = add i64 %k, 1
  br label %head
bad:
  ret i1 false
done:
  ret i1 true
}
define internal ptr @find(i64 %number) {
entry:
  %table = load atomic ptr, ptr @table acquire, align 8
  %none = icmp eq ptr %table, null
  br i1 %none, label %missing, label %start
start:
  %count = load atomic i64, ptr %table acquire, align 8
  br label %head
head:
  %k = phi i64 [0, %start], [%k.next, %next]
  %more = icmp ult i64 %k, %count
  br i1 %more, label %look, label %missing
look:
  %row = shl i64 %k, 1
  %here = add i64 %row, 1
  %cell = getelementptr i64, ptr %table, i64 %here
  %n = load atomic i64, ptr %cell acquire, align 8
  %found = icmp eq i64 %n, %number
  br i1 %found, label %hit, label %next
next:
  %k.next = add i64 %k, 1
  br label %head
hit:
  %at = add i64 %row, 2
  %address = call ptr @word(ptr %table, i64 %at)
  ret ptr %address
missing:
  ret ptr null
}
define ptr @handler(ptr %frame) {
entry:
  %version = load i64, ptr @version
  %extension = call ptr @word(ptr %frame, i64 1)
  %plain = icmp eq ptr %extension, null
  br i1 %plain, label %check, label %extended
extended:
  %kind.place = getelementptr i64, ptr %extension, i64 1
  %kind = load i32, ptr %kind.place
  %query = icmp eq i32 %kind, 1
  br i1 %query, label %metadata, label %check
metadata:
  %info = call ptr @word(ptr %extension, i64 3)
  %place = getelementptr i64, ptr %info, i64 3
  store i64 %version, ptr %place
  ret ptr null
check:
  %api = call ptr @word(ptr %frame, i64 2)
  %theirs = call i64 @number(ptr %api, i64 4)
  %tested = icmp eq i64 %theirs, %version
  br i1 %tested, label %run, label %refuse
refuse:
  %e0 = call ptr @error(ptr %frame, ptr @untested)
  ret ptr %e0
run:
  %attributes = call ptr @word(ptr %frame, i64 20)
  %attribute = call ptr @word(ptr %attributes, i64 0)
  %words = call ptr @word(ptr %attribute, i64 2)
  %number = call i64 @number(ptr %words, i64 0)
  %batch = call i64 @number(ptr %words, i64 1)
  %threads = call i64 @number(ptr %words, i64 2)
  %n = call i64 @number(ptr %words, i64 3)
  %m = call i64 @number(ptr %words, i64 4)
  %given = call i64 @number(ptr %frame, i64 7)
  %wanted = call i64 @number(ptr %frame, i64 12)
  %same.n = icmp eq i64 %given, %n
  %same.m = icmp eq i64 %wanted, %m
  %same = and i1 %same.n, %same.m
  br i1 %same, label %gather, label %misfit
gather:
  %inputs = alloca ptr, i64 %n
  %outputs = alloca ptr, i64 %m
  %strides = alloca i64, i64 %n
  %args = call ptr @word(ptr %frame, i64 9)
  %rets = call ptr @word(ptr %frame, i64 14)
  %first = getelementptr i64, ptr %words, i64 5
  %used = mul i64 %n, 3
  %second = getelementptr i64, ptr %first, i64 %used
  %in.ok = call i1 @collect(ptr %args, i64 %n, ptr %first, i64 3, ptr %inputs)
  %out.ok = call i1 @collect(ptr %rets, i64 %m, ptr %second, i64 2, ptr %outputs)
  %ok = and i1 %in.ok, %out.ok
  br i1 %ok, label %stride, label %misfit
stride:
  %k = phi i64 [0, %gather], [%k.next, %copy]
  %more = icmp ult i64 %k, %n
  br i1 %more, label %copy, label %search
copy:
  %triple = mul i64 %k, 3
  %where = add i64 %triple, 2
  %bytes = call i64 @number(ptr %first, i64 %where)
  %slot = getelementptr i64, ptr %strides, i64 %k
  store i64 %bytes, ptr %slot
  %k.next = add i64 %k, 1
  br label %stride
search:
  %kernel = call ptr @find(i64 %number)
  %lost = icmp eq ptr %kernel, null
  br i1 %lost, label %gone, label %work
work:
  %empty = icmp eq i64 %batch, 0
  br i1 %empty, label %done, label %call
call:
  %status = call i32 %kernel(ptr %inputs, ptr %strides, ptr %outputs, i64 %batch, i64 %threads)
  %fine = icmp eq i32 %status, 0
  br i1 %fine, label %done, label %full
done:
  ret ptr null
misfit:
  %e1 = call ptr @error(ptr %frame, ptr @mismatch)
  ret ptr %e1
gone:
  %e2 = call ptr @error(ptr %frame, ptr @unknown)
  ret ptr %e2
full:
  %is.memory = icmp eq i32 %status, 1
  br i1 %is.memory, label %short, label %raised
raised:
  %e4 = call ptr @error(ptr %frame, ptr @failed)
  ret ptr %e4
short:
  %e3 = call ptr @error(ptr %frame, ptr @memory)
  ret ptr %e3
}
"""
