"""Compiled building blocks: find the bins of a point, gather from them, scatter to them, one SIMD vector per row.

They are written as LLVM IR because Numba's own loops leave the row of bins as scalars. Everything that shapes the
code (dimensions, support, degree, order) is a compile-time constant, so what runs has neither loops nor branches.
Call them from any `numba.njit` function; `locate`, then `gather` or `scatter` where the point is inside:

    inside, index, u = locate((y, x), inner, plane, row, SUPPORT)
    gradient = gather(frame, index, plane, row, u, table, SUPPORT, DEGREE, 1)

`plane` and `row` are the steps, in elements, of the two leading axes (`plane` is not used below three dimensions).
`table` is the (degree + 1, lanes) array of `tables.lane_table`: a `KernelTable`'s coefficients with zero columns up to
`lanes(support)`.
"""

# mypy: ignore-errors
# Numba gives types to what its decorators see; mypy cannot follow.

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from cmaxslam_fbp.fbp.kernels import derivative_orders
from cmaxslam_fbp.fbp.tables import lanes
from cmaxslam_fbp.fbp.vectors_numba import I32, I64, Vectors, data_pointer


def _bin_weights(v, table, fraction, degree, order):
    """Return the weights of a row of bins and their derivatives up to `order`: Horner's rule, all bins at once."""
    u = v.spread(fraction)
    values = [None] * (order + 1)
    for power in range(degree + 1):
        for n in range(order, 0, -1):
            if values[n - 1] is not None:
                values[n] = values[n - 1] if values[n] is None else v.multiply_add(values[n], u, values[n - 1])
        coefficient = v.load(v.address(table, I64(power * v.width)))
        values[0] = coefficient if values[0] is None else v.multiply_add(values[0], u, coefficient)
    values = [v.zero() if value is None else value for value in values]
    if order == 2:  # Horner's scheme yields the derivative over the factorial
        values[2] = v.builder.fadd(values[2], values[2])
    return values


def _planar_gradient(v, frame, table, index, row, fractions, support, degree):
    """Return the two sums of a gradient in the plane, computed side by side in one vector of twice the width.

    The lower half works on the first axis and sums `kappa'(y) kappa(x)` rows, the upper half on the other.
    """
    width, builder = v.width, v.builder
    both = Vectors(builder, v.element, 2 * width)
    lower = list(range(width))
    u = v.shuffle(v.spread(fractions[0]), list(range(2 * width)), v.spread(fractions[1]))
    value = slope = None
    for power in range(degree + 1):
        coefficient = v.shuffle(v.load(v.address(table, I64(power * width))), lower * 2)
        if value is not None:
            slope = value if slope is None else both.multiply_add(slope, u, value)
        value = coefficient if value is None else both.multiply_add(value, u, coefficient)
    slope = both.zero() if slope is None else slope
    sums = None
    for a in range(support):
        bins = v.load(v.address(frame, builder.add(index, builder.mul(row, I64(a)))))
        weight = both.shuffle(slope, [a] * width + [2 * width + a] * width, value)
        sums = both.multiply_add(weight, v.shuffle(bins, lower * 2), sums)
    upper = [width + lane for lane in lower]
    products = both.multiply(sums, both.shuffle(value, upper + [2 * width + lane for lane in upper], slope))
    kept = [lane if lane % width < support else 2 * width + lane for lane in range(2 * width)]
    products = both.shuffle(products, kept, both.zero())
    while width > 1:
        half = width // 2
        first = [lane for lane in range(2 * width) if lane % width < half]
        products = builder.fadd(both.shuffle(products, first), both.shuffle(products, [p + half for p in first]))
        width = half
    return [builder.extract_element(products, I32(lane)) for lane in (0, 1)]


@intrinsic(prefer_literal=True)
def locate(typingctx, point, inner, plane, row, support):
    """Return whether all bins of the point are inside, the flat index of the first one, and the fractions `u`.

    `inner` (2, D) holds, per axis, the half-open range of coordinates whose bins are all inside. The
    comparison is false for NaN. Where the first value is False the index means nothing; the fractions hold for any
    finite point.
    """
    size, bins = point.count, support.literal_value
    is_centred, reach = bins % 2 == 1, (bins - 1) // 2
    result = types.Tuple((types.boolean, types.int64, types.UniTuple(point.dtype, size)))
    signature = result(point, inner, types.int64, types.int64, support)

    def generate(context, builder, signature, args):
        v = Vectors(builder, context.get_value_type(point.dtype), size)
        integers = ir.VectorType(I32, size)
        bounds = data_pointer(context, builder, signature.args[1], args[1])
        x = v.undefined
        for d, coordinate in enumerate(cgutils.unpack_tuple(builder, args[0], size)):
            x = builder.insert_element(x, coordinate, I32(d))
        low, high = (v.load(v.address(bounds, I64(side * size))) for side in (0, 1))
        within = builder.and_(builder.fcmp_ordered(">=", x, low), builder.fcmp_ordered("<", x, high))
        inside = builder.icmp_unsigned("==", builder.bitcast(within, ir.IntType(size)), ir.IntType(size)(2**size - 1))
        whole = v.floor(x)
        fraction = builder.fsub(x, whole)
        first = builder.fptosi(whole, integers)
        half = v.constant(0.5)
        if is_centred:  # the upper half of a bin belongs to the next one
            upper = builder.fcmp_ordered(">=", fraction, half)
            first = builder.add(first, builder.zext(upper, integers))
            fraction = builder.fsub(fraction, builder.select(upper, v.constant(1.0), v.zero()))
        else:
            fraction = builder.fsub(fraction, half)
        index = I64(0)
        for d, step in enumerate([args[2], args[3], I64(1)][3 - size :]):
            bin_ = builder.sext(builder.extract_element(first, I32(d)), I64)
            index = builder.add(index, builder.mul(builder.sub(bin_, I64(reach)), step))
        fractions = [builder.extract_element(fraction, I32(d)) for d in range(size)]
        packed = context.make_tuple(builder, types.UniTuple(point.dtype, size), fractions)
        return context.make_tuple(builder, signature.return_type, [inside, index, packed])

    return signature, generate


@intrinsic(prefer_literal=True)
def gather(typingctx, frame, index, plane, row, fractions, table, support, degree, order):
    """Return `sum_j frame_j prod_d kappa^(n_d)(x_d - j_d)` for each `n` of `derivative_orders(D, order)`."""
    size, bins = fractions.count, support.literal_value
    wanted = derivative_orders(size, order.literal_value)
    result = types.UniTuple(frame.dtype, len(wanted))
    signature = result(frame, types.int64, types.int64, types.int64, fractions, table, support, degree, order)

    def generate(context, builder, signature, args):
        v = Vectors(builder, context.get_value_type(frame.dtype), lanes(bins))
        pointer = data_pointer(context, builder, signature.args[0], args[0])
        coefficients = data_pointer(context, builder, signature.args[5], args[5])
        steps = [args[2], args[3]][3 - size :]
        fractions = cgutils.unpack_tuple(builder, args[4], size)
        # Vectors of twice the width pay as long as they fit in the 256 bits that every processor has.
        if size == 2 and order.literal_value == 1 and 2 * v.width * v.align <= 32:
            totals = _planar_gradient(v, pointer, coefficients, args[1], args[3], fractions, bins, degree.literal_value)
            return context.make_tuple(builder, signature.return_type, totals)
        weights = [_bin_weights(v, coefficients, u, degree.literal_value, order.literal_value) for u in fractions]

        def contract(axis, offset):
            """Sum over all axes from this one to the last but one: a row per multi-index of those axes."""
            if axis == size - 1:
                return {(): v.load(v.address(pointer, offset))}
            sums = {}
            for a in range(bins):
                rest = contract(axis + 1, builder.add(offset, builder.mul(steps[axis], I64(a))))
                for multi in sorted({n[axis:-1] for n in wanted}):
                    weight = v.lane(weights[axis][multi[0]], a)
                    sums[multi] = v.multiply_add(weight, rest[multi[1:]], sums.get(multi))
            return sums

        rows = contract(0, args[1])
        totals = [v.total(v.keep(v.multiply(rows[n[:-1]], weights[-1][n[-1]]), bins)) for n in wanted]
        return context.make_tuple(builder, signature.return_type, totals)

    return signature, generate


@intrinsic(prefer_literal=True)
def scatter(typingctx, frame, index, plane, row, fractions, table, amounts, support, degree, order):
    """Add `amounts[0] prod_d k_d` (order 0) or `sum_d amounts[d] d/dx_d prod_e kappa_e` (order 1) to a point's bins.

    The last addition is never fused with a product: a bin gets the same bits whether an amount comes to it
    here or by way of a patch.
    """
    size, bins = fractions.count, support.literal_value
    signature = types.void(
        frame, types.int64, types.int64, types.int64, fractions, table, amounts, support, degree, order
    )

    def generate(context, builder, signature, args):
        v = Vectors(builder, context.get_value_type(frame.dtype), lanes(bins))
        pointer = data_pointer(context, builder, signature.args[0], args[0])
        coefficients = data_pointer(context, builder, signature.args[5], args[5])
        steps = [args[2], args[3]][3 - size :]
        weights = [
            _bin_weights(v, coefficients, u, degree.literal_value, order.literal_value)
            for u in cgutils.unpack_tuple(builder, args[4], size)
        ]
        amount = [v.spread(a) for a in cgutils.unpack_tuple(builder, args[6], amounts.count)]

        def expand(axis, offset, value, slope):
            """Carry the product over the axes so far, and its derivative along the amounts, to the rows."""
            if axis == size - 1:
                last = weights[axis]
                if slope is None and order.literal_value == 0:
                    share = v.multiply(value, last[0])
                else:
                    along = v.multiply(amount[axis], last[1])
                    along = along if value is None else v.multiply(value, along)
                    share = along if slope is None else v.multiply_add(slope, last[0], along)
                address = v.address(pointer, offset)
                builder.store(builder.fadd(v.load(address), v.keep(share, bins)), address, align=v.align)
                return
            for a in range(bins):
                here = builder.add(offset, builder.mul(steps[axis], I64(a)))
                weight = v.lane(weights[axis][0], a)
                product = weight if value is None else v.multiply(value, weight)
                if order.literal_value == 0:
                    expand(axis + 1, here, product, None)
                    continue
                along = v.multiply(amount[axis], v.lane(weights[axis][1], a))
                along = along if value is None else v.multiply(value, along)
                expand(axis + 1, here, product, along if slope is None else v.multiply_add(slope, weight, along))

        expand(0, args[1], amount[0] if order.literal_value == 0 else None, None)
        return context.get_dummy_value()

    return signature, generate
