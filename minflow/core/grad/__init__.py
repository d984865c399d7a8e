"""What is public about gradients: grad modes, functions with a gradient of one's own, and the check of a gradient.

The backward pass itself is `../autograd.py`. Read next: `modes.py`.
"""
