"""The engine itself, in the order to read it: rule, recording, levels, sweep, node, forward, functionals.

This package differentiates any function of any rules, and knows none: families of functions (`adbench.tape.rules` and
its neighbours) declare rules, and give `Active` its operators, methods and numpy's functions. `adbench.tape.fast`
replaces some of its methods by faster ones with the same results.
"""
