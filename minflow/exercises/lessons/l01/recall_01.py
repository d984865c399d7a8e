"""01.0 recall_01: three questions about lesson 00."""

from ...definition import recall

exercise = recall(
    "01.0",
    ("What training changes", "b",
     "Look again at lesson 00, section 3. The digits stay as they are, and so do the lines of code. What was changed?"),
    ("Why some digits are kept unseen", "c",
     "Look again at lesson 00, section 3: anyone who has seen the answers can repeat them without having learned "
     "anything."),
    ("A learning rate that is far too large", "a",
     "Look again at lesson 00, section 5, at the curve of the largest rate. Did its loss fall?"),
)
