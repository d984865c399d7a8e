"""What is said to a user: near names, wrong arguments, likely mistakes that run, and how a tensor prints.

Nothing of it runs while a program is right, but for one look at each loss. Read next: `suggestions.py`,
`training_warnings.py`.
"""
