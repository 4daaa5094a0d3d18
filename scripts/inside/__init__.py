"""What each layer of the embedded biLM knows: probes, senses and neighbours."""
