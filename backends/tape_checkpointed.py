"""adbench.tape with checkpoints: keep √n states of a loop and evaluate its steps twice."""

from adbench import Namespace, tape

from . import tape as plain

VARIANT_OF = "tape"
before_timing = plain.before_timing

xp = Namespace(tape, loop=tape.checkpointed_loop, linalg=vars(tape.linalg), derivative=plain.xp.derivative)

prepare, NESTED = plain.prepare, plain.NESTED
