"""Lesson 03: the tape."""
