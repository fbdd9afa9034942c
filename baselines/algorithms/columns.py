"""The columns of metrics.csv that algorithms fill; see `experiment.records`."""

TRAINING = (
    'client_learning_rate',
    'server_learning_rate',
    'loss_before_training',
    'update_norm',
    'clients_used',
    'clients_empty',
    'clients_non_finite',
    'examples_used',
)
DECAY = ('average_loss', 'client_decays', 'server_decays')
MESSAGES = (
    'num_queries',
    'time_used',
    'sent',
    'uplink_bits',
    'downlink_bits',
    'cumulative_uplink_bits',
    'cumulative_downlink_bits',
    'clients_not_sent',
)
CEAL = (
    'epoch',
    'stage',
    'stepped',
    'estimated_gradient_norm',
    'true_gradient_norm',
    'threshold',
    'rounding_norm',
    'passes_by_rounding',
)
