"""What a report says, decided before it is formatted."""
