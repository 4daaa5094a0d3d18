"""Long runs that attack the package: sanitized loops, damaged files, endurance, and kills at random moments."""
