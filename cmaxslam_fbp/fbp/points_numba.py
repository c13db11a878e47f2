"""Points as tuples of scalars: read and write them, scale them, multiply them by a matrix; any number of dimensions."""

# mypy: ignore-errors
# Numba gives types to what its decorators see; mypy cannot follow.

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from cmaxslam_fbp.fbp.vectors_numba import I64


@intrinsic(prefer_literal=True)
def point_at(typingctx, points, i, dimensions):
    """Return row `i` of the array (N, D) as a tuple of D scalars."""
    size = dimensions.literal_value
    signature = types.UniTuple(points.dtype, size)(points, types.int64, dimensions)

    def generate(context, builder, signature, args):
        array_type = signature.args[0]
        array = cgutils.create_struct_proxy(array_type)(context, builder, args[0])
        values = [
            builder.load(
                cgutils.get_item_pointer(context, builder, array_type, array, [args[1], I64(d)], wraparound=False)
            )
            for d in range(size)
        ]
        return context.make_tuple(builder, signature.return_type, values)

    return signature, generate


@intrinsic
def put_point(typingctx, points, i, values):
    """Write a tuple of D scalars to row `i` of the array (N, D)."""
    signature = types.void(points, types.int64, values)

    def generate(context, builder, signature, args):
        array_type = signature.args[0]
        array = cgutils.create_struct_proxy(array_type)(context, builder, args[0])
        for d, value in enumerate(cgutils.unpack_tuple(builder, args[2], values.count)):
            item = cgutils.get_item_pointer(context, builder, array_type, array, [args[1], I64(d)], wraparound=False)
            builder.store(value, item)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def scaled(typingctx, values, factor):
    """Return the tuple of scalars, each times the factor."""
    signature = values(values, values.dtype)

    def generate(context, builder, signature, args):
        products = [builder.fmul(value, args[1]) for value in cgutils.unpack_tuple(builder, args[0], values.count)]
        return context.make_tuple(builder, signature.return_type, products)

    return signature, generate


@intrinsic
def apply_curvature(typingctx, curvature, direction):
    """Return the symmetric matrix, given as its upper triangle row by row, times the vector."""
    size = direction.count
    signature = direction(curvature, direction)

    def generate(context, builder, signature, args):
        upper = cgutils.unpack_tuple(builder, args[0], curvature.count)
        vector = cgutils.unpack_tuple(builder, args[1], size)
        pairs = [(d, e) for d in range(size) for e in range(d, size)]
        entries = dict(zip(pairs, upper, strict=True))
        products = []
        for d in range(size):
            terms = [builder.fmul(entries[min(d, e), max(d, e)], vector[e]) for e in range(size)]
            total = terms[0]
            for term in terms[1:]:
                total = builder.fadd(total, term)
            products.append(total)
        return context.make_tuple(builder, signature.return_type, products)

    return signature, generate
