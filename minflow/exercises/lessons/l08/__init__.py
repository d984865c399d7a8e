"""Lesson 06: learnt or remembered."""
