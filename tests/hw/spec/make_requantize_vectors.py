"""Writes requantize_vectors.txt: arguments and results of requantization in Python's unbounded integers.

The semantics are those of hw/spec/requantize.h, written from its text and not from its code: shifts are divisions by
powers of two that round down, and nothing wraps but the one addition that must. Run it in this folder:
python3 make_requantize_vectors.py
"""

import itertools
import random


def requantize(acc, bias, multiplier, shift, v_lo, v_hi, zero, lo, hi, residual, r, r_zero, r_multiplier, r_shift):
    def clamp(x, low, high):
        return min(max(x, low), high)

    t = (acc + bias + 2**31) % 2**32 - 2**31
    v = clamp(t * multiplier // 2**shift, 256 * v_lo, 256 * v_hi)
    w = clamp((r - r_zero) * r_multiplier // 2**r_shift, -2**19, 2**19 - 1) if residual else 0
    return clamp(zero + (v + w + 128) // 256, lo, hi)


INT32 = (-2**31, -2**31 + 1, -1, 0, 1, 2**31 - 1)
INT8 = (-128, -127, -1, 0, 1, 127)


def corner(generator):
    """A vector whose every argument is often an extreme."""

    def value(low, high, extremes):
        return extremes[generator.randrange(len(extremes))] if generator.random() < 0.5 else generator.randint(low, high)

    def int8():
        return value(-128, 127, INT8)

    return (
        value(-2**31, 2**31 - 1, INT32) if generator.random() < 0.4 else generator.randint(-2**24, 2**24),
        value(-2**31, 2**31 - 1, INT32) if generator.random() < 0.2 else generator.randint(-2**20, 2**20),
        value(2**15, 2**16 - 1, (0, 1, 2**15, 2**16 - 1)),
        value(0, 39, (0, 7, 8, 31, 32, 39, 47, 48, 63)),
        value(-2048, 2047, (-2048, -1, 0, 2047)),
        value(-2048, 2047, (-2048, -1, 0, 2047)),
        int8(),
        int8(),
        int8(),
        generator.randint(0, 1),
        int8(),
        int8(),
        value(0, 2**16 - 1, (0, 1, 2**15, 2**16 - 1)),
        value(0, 31, (0, 7, 8, 24, 25, 31)),
    )


def halves():
    """Results exactly between two integers, and one step beside, on both sides of zero, for each useful shift."""
    for shift, sign, offset in itertools.product(range(7, 40), (-1, 1), (-1, 0, 1)):
        acc = sign * 3 * 2 ** (shift + 8 - 16) + offset if shift >= 8 else sign * 3 + offset
        yield (acc, 0, 2**15, shift, -2048, 2047, 0, -128, 127, 0, 0, 0, 0, 0)


def main():
    generator = random.Random(20)
    vectors = list(halves()) + [corner(generator) for _ in range(600)]
    with open("requantize_vectors.txt", "w") as out:
        out.write("# acc bias multiplier shift v_lo v_hi zero lo hi residual r r_zero r_multiplier r_shift result;\n")
        out.write("# by make_requantize_vectors.py\n")
        for vector in vectors:
            out.write(" ".join(map(str, (*vector, requantize(*vector)))) + "\n")


if __name__ == "__main__":
    main()
