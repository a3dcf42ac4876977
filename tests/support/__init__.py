"""What the tests share: an auditor, scenes, schedules, workers. None of it ships."""
