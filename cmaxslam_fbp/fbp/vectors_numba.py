"""Vectors in LLVM IR: the few operations that the compiled building blocks need."""

# mypy: ignore-errors
# Numba gives types to what its decorators see; mypy cannot follow.

from llvmlite import ir
from numba.core import cgutils

I32, I64 = ir.IntType(32), ir.IntType(64)


class Vectors:
    """Vector operations on one builder, of one type of element and one width."""

    def __init__(self, builder, element, width):
        self.builder, self.element, self.width = builder, element, width
        self.type = ir.VectorType(element, width)
        self.undefined = ir.Constant(self.type, ir.Undefined)
        self.align = 8 if isinstance(element, ir.DoubleType) else 4

    def shuffle(self, vector, picks, second=None):
        """Return the picked lanes of a vector, or of two, the lanes of the second counted on from the first."""
        mask = ir.Constant(ir.VectorType(I32, len(picks)), [ir.Constant(I32, p) for p in picks])
        second = ir.Constant(vector.type, ir.Undefined) if second is None else second
        return self.builder.shuffle_vector(vector, second, mask)

    def spread(self, scalar):
        """Return a vector with the scalar in every lane."""
        return self.shuffle(self.builder.insert_element(self.undefined, scalar, I32(0)), [0] * self.width)

    def lane(self, vector, index):
        """Return a vector with one lane of the given one in every lane."""
        return self.shuffle(vector, [index] * self.width)

    def constant(self, value):
        """Return a vector of equal constants."""
        return ir.Constant(self.type, [ir.Constant(self.element, value)] * self.width)

    def zero(self):
        """Return a vector of zeros."""
        return self.constant(0.0)

    def call(self, name, *vectors):
        """Call the LLVM intrinsic of that name for this type of vector."""
        kind = ir.FunctionType(self.type, [self.type] * len(vectors))
        name = f"llvm.{name}.v{self.width}{self.element.intrinsic_name}"
        return self.builder.call(cgutils.get_or_insert_function(self.builder.module, kind, name), vectors)

    def floor(self, vector):
        """Round every lane down."""
        return self.call("floor", vector)

    def address(self, pointer, offset):
        """Return the address of the vector that starts `offset` elements behind the pointer."""
        return self.builder.bitcast(self.builder.gep(pointer, [offset]), self.type.as_pointer())

    def load(self, address):
        """Read a vector; it need not be aligned."""
        return self.builder.load(address, align=self.align)

    def multiply(self, a, b):
        """Return `a b`."""
        return self.builder.fmul(a, b)

    def multiply_add(self, a, b, c):
        """Return `a b + c`, with None for a `c` of zero.

        Fused where the processor can, and then everywhere: were it left to the optimiser, two copies of the same
        code could differ in the last bit.
        """
        return self.multiply(a, b) if c is None else self.call("fmuladd", a, b, c)

    def keep(self, vector, count):
        """Return the vector with zeros behind the first `count` lanes, whatever stood there."""
        if count == self.width:
            return vector
        picks = [lane if lane < count else self.width + lane for lane in range(self.width)]
        return self.shuffle(vector, picks, self.zero())

    def total(self, vector):
        """Return the sum of all lanes, added pairwise."""
        width = self.width
        while width > 1:
            width //= 2
            low, high = (self.shuffle(vector, list(range(start, start + width))) for start in (0, width))
            vector = self.builder.fadd(low, high)
        return self.builder.extract_element(vector, I32(0))


def data_pointer(context, builder, array_type, array):
    """Return the address of an array's first element."""
    return cgutils.create_struct_proxy(array_type)(context, builder, array).data
