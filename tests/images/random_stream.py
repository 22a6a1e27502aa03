# SPDX-License-Identifier: Apache-2.0
"""The random streams and distributions of images/, so that the references can be run on the very same draws."""
import math

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
AUGMENTATION = 3  # Purpose::kAugmentation


def mix(z):
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return z ^ (z >> 31)


class RandomStream:
    def __init__(self, seed, purpose=AUGMENTATION):
        self.state = mix((mix(seed + GOLDEN & MASK) + GOLDEN * purpose) & MASK)

    def next(self):
        self.state = (self.state + GOLDEN) & MASK
        return mix(self.state)

    def below(self, bound):
        unfair = (1 << 64) % bound
        while (draw := self.next()) < unfair:
            pass
        return draw % bound

    def uniform(self, low=0.0, high=1.0):
        return low + (high - low) * ((self.next() >> 11) * 2.0**-53)

    def normal(self):
        u, v = 1 - self.uniform(), self.uniform()
        return math.sqrt(-2 * math.log(u)) * math.cos(2 * math.pi * v)

    def order(self, n):
        order = list(range(n))
        for i in range(n, 1, -1):
            j = self.below(i)
            order[i - 1], order[j] = order[j], order[i - 1]
        return order

    def gamma(self, shape):
        if shape < 1:
            above = self.gamma(shape + 1)
            return above * (1 - self.uniform()) ** (1 / shape)
        d = shape - 1 / 3
        c = 1 / math.sqrt(9 * d)
        while True:
            normal = self.normal()
            root = 1 + c * normal
            if root > 0:
                cube = root**3
                if math.log(1 - self.uniform()) < 0.5 * normal * normal + d - d * cube + d * math.log(cube):
                    return d * cube

    def beta(self, a, b):
        if a > 1 or b > 1:
            x, y = self.gamma(a), self.gamma(b)
            return x / (x + y)
        while True:
            log_x, log_y = math.log(1 - self.uniform()) / a, math.log(1 - self.uniform()) / b
            larger = max(log_x, log_y)
            x, y = math.exp(log_x - larger), math.exp(log_y - larger)
            if larger + math.log(x + y) <= 0:
                return x / (x + y)
