"""One file per case or family, written once for all libraries. adbench/model/case.py has the contract."""
