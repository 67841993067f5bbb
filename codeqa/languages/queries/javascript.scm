; What only JavaScript has; the rest is in ecmascript.scm, JSX in jsx.scm.

; --- classes ---------------------------------------------------------------------------
(class_declaration name: (identifier) @name body: (_) @body) @definition.class
(variable_declarator name: (identifier) @name value: (class body: (_) @body)) @definition.class
(pair key: (property_identifier) @name value: (class !name body: (_) @body)) @definition.class
(assignment_expression
  left: [
    (identifier) @name
   (_ property: (property_identifier) @name)
    (subscript_expression index: (string) @name)
  ]
  right: (class !name body: (_) @body)) @definition.class
(export_statement "default" @name value: (class !name body: (_) @body)) @definition.class
(class name: (identifier) @name body: (_) @body) @definition.class

(field_definition
  property: [(property_identifier) (private_property_identifier)] @name
  value: [(arrow_function body: (_) @body) (function_expression body: (_) @body)]) @definition.lambda

(class_heritage (identifier) @reference.inherits)
(class_heritage (_ object: (_) @receiver property: (_) @reference.inherits))
(class_heritage (call_expression arguments: (arguments (identifier) @reference.inherits)))

(field_definition
  property: [(property_identifier) (private_property_identifier)] @variable.member
  value: (new_expression constructor: [(identifier) (member_expression)] @variable.type))

(field_definition value: (identifier) @reference.value)
