"""Which data, which loss, which metrics, how a prediction reads back as text."""
