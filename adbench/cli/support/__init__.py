"""What several verbs of the command line share."""
