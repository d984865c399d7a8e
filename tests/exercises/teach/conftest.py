from tests.exercises.teach.small_course import course_folder  # noqa: F401
