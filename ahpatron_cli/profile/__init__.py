"""What `ahpatron inspect DATA` finds out about a file."""
