"""minflow, for `import torch` in a Python process that a program of `python -m minflow.compat` starts.

`../../names.py` puts this folder on PYTHONPATH and `sys.path`.
"""

import sys

sys.path.insert(0, __file__.rpartition("minflow")[0])  # the same minflow as in the program

from minflow.compat.names import import_in_child

del sys.path[0]
import_in_child(__name__, "torch")
