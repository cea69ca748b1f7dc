import math


class Vector:
    def __init__(self, x, y, z):
        self.x = x
        self.y = y
        self.z = z

    def __add__(self, other):
        return Vector(self.x + other.x, self.y + other.y, self.z + other.z)

    def __sub__(self, other):
        return Vector(self.x - other.x, self.y - other.y, self.z - other.z)

    def dot(self, other):
        return self.x * other.x + self.y * other.y + self.z * other.z

    def length(self):
        return math.sqrt(self.dot(self))

    def normalized(self):
        n = self.length()
        return Vector(self.x / n, self.y / n, self.z / n)


def mean(vectors):
    total = Vector(0, 0, 0)
    for v in vectors:
        total = total + v
    k = len(vectors)
    return Vector(total.x / k, total.y / k, total.z / k)
