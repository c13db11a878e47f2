"""Ask for memory before it is needed: loops over events touch the pixels of a large sensor in no order."""

# mypy: ignore-errors
# Numba gives types to what its decorators see; mypy cannot follow.

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

AHEAD = 32  # events: memory takes about as long as these

_I32 = ir.IntType(32)
_WRITTEN, _STAYS, _DATA = _I32(1), _I32(3), _I32(1)


@intrinsic
def prefetch(typing_context, array, index):
    """Ask for the cache line with the element of an array (N,) of that index, which is about to be changed."""

    def generate(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        address = builder.bitcast(builder.gep(data, [arguments[1]]), cgutils.voidptr_t)
        kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, _I32, _I32, _I32])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(function, [address, _WRITTEN, _STAYS, _DATA])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate
