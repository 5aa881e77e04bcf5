"""One file per case or close family: the maths once, for every library. The contract is in adbench/model/case.py."""
