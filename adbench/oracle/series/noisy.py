import math
from adbench.oracle.series.number import Real
def noisy_type(seed, draw): return Real
def spread(errors): return math.sqrt(sum(e*e for e in errors)/len(errors)) if errors else 0.0
