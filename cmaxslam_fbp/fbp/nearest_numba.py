"""The rect kernel compiled: many points at once to their nearest bins."""

# mypy: ignore-errors
# Numba gives types to what its decorators see; mypy cannot follow.

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from cmaxslam_fbp.fbp.vectors_numba import I32, I64, Vectors, data_pointer


@intrinsic(prefer_literal=True)
def scatter_nearest(typingctx, points, i, weights, frame, inner, plane, row, spare, dimensions, count):
    """Add the weights (or one each) of the `count` points from `i` on to their nearest bins: the rect kernel.

    The indices of all points are found at once. A point outside adds zero to bin `spare`, or one of the
    `count - 1` behind it: no branch to mispredict, and no chain of additions to a single bin.
    """
    size, width = dimensions.literal_value, count.literal_value
    signature = types.void(
        points, types.int64, weights, frame, inner, types.int64, types.int64, types.int64, dimensions, count
    )

    def load_columns(context, builder, array_type, array, i):
        """Return the coordinates of all points, a vector per axis, from either order of memory."""
        element = context.get_value_type(points.dtype)
        column, record = Vectors(builder, element, width), Vectors(builder, element, width * size)
        struct = cgutils.create_struct_proxy(array_type)(context, builder, array)
        if array_type.layout == "F":
            length = cgutils.unpack_tuple(builder, struct.shape, 2)[0]
            starts = [builder.add(i, builder.mul(length, I64(d))) for d in range(size)]
            return [column.load(column.address(struct.data, start)) for start in starts]
        records = record.load(record.address(struct.data, builder.mul(i, I64(size))))
        return [record.shuffle(records, [d + size * lane for lane in range(width)]) for d in range(size)]

    def generate(context, builder, signature, args):
        v = Vectors(builder, context.get_value_type(points.dtype), width)
        integers = ir.VectorType(I32, width)
        bounds = data_pointer(context, builder, signature.args[4], args[4])
        columns = load_columns(context, builder, signature.args[0], args[0], args[1])

        def spread_integer(scalar):
            undefined = ir.Constant(integers, ir.Undefined)
            return v.shuffle(builder.insert_element(undefined, builder.trunc(scalar, I32), I32(0)), [0] * width)

        inside, index = None, None
        for d, step in enumerate([args[5], args[6], None][3 - size :]):
            x = columns[d]
            low, high = (v.spread(builder.load(builder.gep(bounds, [I64(side * size + d)]))) for side in (0, 1))
            within = builder.and_(builder.fcmp_ordered(">=", x, low), builder.fcmp_ordered("<", x, high))
            inside = within if inside is None else builder.and_(inside, within)
            # Where the point is outside, zero stands for it: the conversion of NaN or 1e30 is not defined.
            x = builder.select(within, x, v.zero())
            whole = v.floor(x)
            upper = builder.fcmp_ordered(">=", builder.fsub(x, whole), v.constant(0.5))
            nearest = builder.add(builder.fptosi(whole, integers), builder.zext(upper, integers))
            nearest = nearest if step is None else builder.mul(nearest, spread_integer(step))
            index = nearest if index is None else builder.add(index, nearest)
        steps = ir.Constant(integers, [ir.Constant(I32, lane) for lane in range(width)])
        index = builder.select(inside, index, builder.add(spread_integer(args[7]), steps))
        if isinstance(weights, types.NoneType):
            amount = v.constant(1.0)
        else:
            amount = v.load(v.address(data_pointer(context, builder, signature.args[2], args[2]), args[1]))
        amount = builder.select(inside, amount, v.zero())
        target = data_pointer(context, builder, signature.args[3], args[3])
        for lane in range(width):
            address = builder.gep(target, [builder.zext(builder.extract_element(index, I32(lane)), I64)])
            builder.store(builder.fadd(builder.load(address), builder.extract_element(amount, I32(lane))), address)
        return context.get_dummy_value()

    return signature, generate
