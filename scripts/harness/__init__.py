"""Long tests: damaged files (fuzz), the compiled loops with sanitizers (sanitize), kills and endurance (soak)."""
