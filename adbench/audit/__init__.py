"""What a suite's gradient tests notice: each is run again with its gradients spoiled."""
