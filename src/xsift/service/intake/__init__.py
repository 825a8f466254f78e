"""Documents that do not come by HTTP: files that are put into a folder, messages of a Kafka topic."""
